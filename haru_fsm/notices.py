"""What the engine itself says to a customer, where neither the model nor a person has spoken.

Each is written here and never by a model, so none can tell of a ticket that does not exist. `App(notices=...)` takes
others, in the customers' language and in the shop's own tone; a folder's `states/` may export them as `NOTICES`.
"""

from __future__ import annotations

from dataclasses import dataclass

from haru_fsm.conversation import Ticket

NUMBER = "{ticket_id}"
"""Where a ticket's number stands in `opened` and `added`."""
WITH_NUMBER = ("opened", "added")


@dataclass(frozen=True, kw_only=True, slots=True)
class Notices:
    """The notices of one language. Where `opened` or `added` has no `{ticket_id}`, the number is put behind it."""

    opened: str
    """A person takes over: a ticket has been opened."""
    added: str
    """A person takes over, and the conversation had an open ticket already."""
    holding: str
    """A person is to take over, and the ticket desk is out of reach. There is no number yet."""
    working: str
    """The run is still to be carried on: no person has it, and no number is due."""
    waiting: str
    """The run has paused for a person's approval."""
    held: str
    """They wrote in such a pause: the message is kept, and answered when the pause is over."""

    def ticket(self, ticket: Ticket, /, *, added: bool = False) -> str:
        """What the customer reads of this ticket. `added`: the conversation had it already."""
        return (self.added if added else self.opened).replace(NUMBER, ticket.ticket_id)


KOREAN = Notices(
    opened="죄송합니다. 바로 해결해 드리지 못해 상담 담당자에게 전달했습니다. 접수 번호는 {ticket_id}입니다. "
    "담당자가 확인한 뒤 답변드리겠습니다.",
    added="남겨 주신 내용을 이미 접수된 상담(접수 번호 {ticket_id})에 추가했습니다. "
    "담당자가 확인한 뒤 답변드리겠습니다.",
    holding="죄송합니다. 바로 해결해 드리지 못해 상담 담당자에게 전달하고 있습니다. "
    "접수가 끝나는 대로 접수 번호를 알려 드리겠습니다.",
    working="문의하신 내용을 확인하고 있습니다. 확인이 끝나는 대로 답변드리겠습니다.",
    waiting="요청하신 내용은 담당자의 승인이 필요해 확인하고 있습니다. "
    "승인 여부가 정해지는 대로 이어서 안내해 드리겠습니다.",
    held="앞서 요청하신 내용을 담당자가 확인하고 있습니다. 방금 보내신 메시지는 잘 받아 두었으며, "
    "그 일이 끝나는 대로 이어서 답변드리겠습니다.",
)
ENGLISH = Notices(
    opened="I am sorry that I could not settle this myself. A colleague will look into it and get back to you. "
    "Your case number is {ticket_id}.",
    added="I have added this to your open case {ticket_id}. A colleague will look into it and get back to you.",
    holding="I am sorry that I could not settle this myself. I am passing it on to a colleague, "
    "and will tell you the case number as soon as there is one.",
    working="I am still looking into this, and will answer as soon as I can.",
    waiting="A colleague has to approve this first. I will go on as soon as that is decided.",
    held="A colleague is still looking into your last request. I have kept this message, and will answer it next.",
)
