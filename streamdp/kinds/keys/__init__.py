"""The release kind `keys`: which groups there are, found privately and remembered, with counts."""
