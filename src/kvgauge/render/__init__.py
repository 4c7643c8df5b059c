"""Render answers for people. Figures come from the answers, words from ``messages``."""
