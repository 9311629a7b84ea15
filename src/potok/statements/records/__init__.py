"""Records of topics as rows: inserted, decoded and printed."""
