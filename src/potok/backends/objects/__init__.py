"""Object storage: buckets of S3, Google Cloud Storage and Azure, and directories that several machines share."""
