"""Where a document comes from: base64, URL, network volume, S3; unpacked and sniffed."""
