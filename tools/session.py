"""Who is asking. A session names one customer for good, before a model sees any tool."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace

from haru_fsm.errors import UnknownCustomer
from haru_fsm.session import Session

from .seed import Customer
from .shop import Shop, default_shop


@dataclass(frozen=True)
class CustomerSession(Session):
    """A session of a customer of this shop. Raises UnknownCustomer for a number that it does not know."""

    shop: Shop = field(default_factory=default_shop, repr=False, compare=False, kw_only=True)

    def __post_init__(self) -> None:
        if self.shop.customer(self.customer_id) is None:
            raise UnknownCustomer(
                f"This shop has no customer {self.customer_id!r}. Customer numbers look like C001; see data/."
            )
        # One clock for whatever happens in a session, the shop's calendar included.
        object.__setattr__(self, "shop", replace(self.shop, clock=self.clock))

    @classmethod
    def of(cls, session: Session) -> CustomerSession:
        """This session as one of the shop's."""
        if isinstance(session, CustomerSession):
            return session
        return cls(**{each.name: getattr(session, each.name) for each in fields(Session)})

    @property
    def customer(self) -> Customer:
        """The customer's own record."""
        return self.shop.seed.customers[self.customer_id]
