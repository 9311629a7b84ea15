"""A trip: flight and hotel together, then the charge as its pivot, then the ticket."""

from __future__ import annotations

from dataclasses import dataclass

import potok


@potok.event("trip.requested")
@dataclass
class TripRequested:
    trip: str
    city: str


@potok.event("flight.booked")
@dataclass
class FlightBooked:
    trip: str
    seat: str


@potok.event("flight.refused")
@dataclass
class FlightRefused:
    trip: str


@potok.event("flight.cancelled")
@dataclass
class FlightCancelled:
    trip: str


@potok.event("hotel.booked")
@dataclass
class HotelBooked:
    trip: str


@potok.event("hotel.refused")
@dataclass
class HotelRefused:
    trip: str


@potok.event("hotel.cancelled")
@dataclass
class HotelCancelled:
    trip: str


@potok.event("hotel.not-cancelled")
@dataclass
class HotelNotCancelled:
    trip: str


@potok.event("card.charged")
@dataclass
class CardCharged:
    trip: str


@potok.event("card.refused")
@dataclass
class CardRefused:
    trip: str


@potok.event("ticket.sent")
@dataclass
class TicketSent:
    trip: str


@potok.event("ticket.bounced")
@dataclass
class TicketBounced:
    trip: str


@potok.event("trip.stuck")
@dataclass
class TripStuck:
    trip: str


@dataclass
class BookFlight:
    trip: str
    city: str


@dataclass
class CancelFlight:
    trip: str


@dataclass
class BookHotel:
    trip: str
    city: str


@dataclass
class CancelHotel:
    trip: str


@dataclass
class ChargeCard:
    trip: str


@dataclass
class SendTicket:
    trip: str
    seat: str


@potok.saga("trip", by="trip", starts=TripRequested)
class Trip:
    flight = potok.step(
        send=BookFlight, ok=FlightBooked, failed=FlightRefused, undo=CancelFlight, undone=FlightCancelled, timeout="1 h"
    )
    hotel = potok.step(
        send=BookHotel,
        ok=HotelBooked,
        failed=HotelRefused,
        undo=CancelHotel,
        undone=HotelCancelled,
        undo_failed=HotelNotCancelled,
        timeout="30 min",
        retry=potok.retry(1, "1 min"),
    )
    both = potok.together(flight, hotel)
    charge = potok.step(send=ChargeCard, ok=CardCharged, failed=CardRefused, pivot=True)
    ticket = potok.step(
        send=SendTicket, ok=TicketSent, failed=TicketBounced, timeout="1 h", retry=potok.retry(1, "1 min")
    )
    stuck = potok.emit(TripStuck)


START = TripRequested("t1", "Oslo")
FLIGHT, HOTEL, CHARGED, SENT = FlightBooked("t1", "1A"), HotelBooked("t1"), CardCharged("t1"), TicketSent("t1")
