"""Files that start a plan on existing systems: vLLM on Ray, Kubernetes, SGLang and llama.cpp on machines."""

from kvgauge.emit.jobs import Job, job_of
from kvgauge.emit.writing import emit, render_files, systems_of

__all__ = ["Job", "emit", "job_of", "render_files", "systems_of"]
