"""What may happen in a conversation with Haru, and the work of each state."""

from .workflow import State, workflow

__all__ = ["State", "workflow"]
