"""Java date patterns, regular expressions and URIs, as ksqlDB statements use them."""
