"""Bundles written when memory runs out."""
