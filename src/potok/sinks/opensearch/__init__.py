"""The OpenSearch and Elasticsearch sink."""
