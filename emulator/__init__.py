"""A RunPod queue endpoint on localhost, for the demo and the tests. Never part of the image."""
