"""``plan``: which cards, how many, in which parallelism; each option is an answer of ``fit``.

``devices`` are what is looked at, ``layouts`` the ways to spread a model over so many of one, ``cases`` asks
the pipeline of ``fit`` about one of them, ``search`` finds the fewest that hold the load, ``ranking`` puts
what was found in order and says why, ``path`` tells the decision as questions with the numbers in.
"""
