"""Readers: words of a config in, ``ModelArchitecture`` out."""
