"""Property tests are about what holds, not about how fast a busy machine is today."""

from hypothesis import settings

settings.register_profile("rappor", deadline=None)
settings.load_profile("rappor")
