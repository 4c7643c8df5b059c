"""The mechanisms that decide what a layer keeps, as small layers that run and count their own bytes."""
