"""What the batch loop measures, and how metrics are collected from running and stored queries."""
