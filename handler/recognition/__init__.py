"""From a region to its text: prompt, token budget, request, retries, truncation and repetition flags."""
