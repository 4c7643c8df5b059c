"""The page and its JSON API: ``kvgauge serve``. It asks the library and computes nothing.

``serving`` runs a server, ``app`` puts it together, ``guard`` stands before everything, ``routes`` are the
addresses, ``asking`` turns a request into keywords, ``answers`` asks the library, ``library`` keeps models
that were read, ``failures`` turns errors into answers. Needs the extra ``[web]``: starlette and uvicorn.
"""
