"""Why a pod is where it is, or nowhere, and what would help: asked of the engine that schedules."""
