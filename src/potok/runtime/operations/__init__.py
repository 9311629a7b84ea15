"""Operations on stopped queries and next to running ones: replay, shadow, reshard, backup."""
