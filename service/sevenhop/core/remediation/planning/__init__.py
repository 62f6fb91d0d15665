"""
From who waits to the smallest change that helps for certain, or the reason why there is none.

    need_of ─► refusals ─► donors ─► search ( victims × simulate ) ─► Plan, in words

Everything is read from `State`; nothing is changed, and the same state gives the same answer.
"""

from sevenhop.core.remediation.planning.need import need_of as need_of
from sevenhop.core.remediation.planning.planning import plan_for as plan_for
from sevenhop.core.remediation.planning.reservations import Reservation as Reservation
from sevenhop.core.remediation.planning.reservations import Reservations as Reservations
from sevenhop.core.remediation.planning.reservations import reservation as reservation
from sevenhop.core.remediation.planning.reservations import reserve as reserve
from sevenhop.core.remediation.planning.words import plan_lines as plan_lines
