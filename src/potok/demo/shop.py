"""The users, cities and products of the demo's shop."""

from __future__ import annotations

from potok.duration import seconds

ORDERS = "orders"
WINDOW = seconds(10)
GRACE = seconds(5)

FIRST_NAMES = """\
aiko amara anna arjun astrid bruno carla chloe daan diego elena emma felix fatima giulia hana hugo ines ivan jonas
julia kai karim lena liam lucia luka maria mateo maya mei mila nadia noah nora olga omar oscar pablo pavel petra priya
rafael rosa samir sara sofia taro tess theo uma vera viktor wanda yara yusuf zoe
"""

LAST_NAMES = """\
adeyemi ahmed andersen bauer becker bianchi costa dubois eriksen fernandez fischer garcia haddad hansen horvat ito
ivanova jansen jensen kaya khan kim kovacs kowalski larsen lopez martin mehta meyer moreau nair nakamura novak okafor
oliveira park patel pereira popov rossi sato schmidt silva singh sorensen suzuki tanaka torres virtanen weber wagner
wolf yilmaz zhang
"""

CITIES = {
    "Berlin": 24, "Lisbon": 18, "Tokyo": 16, "Paris": 13, "Prague": 10, "Oslo": 8, "Mumbai": 6, "Madrid": 5,
}  # fmt: skip
"""Users per city, in percent."""

GOODS = {
    "coffee beans": 14.9, "green tea": 8.5, "notebook": 6.2, "fountain pen": 32.0, "desk lamp": 39.9,
    "headphones": 89.0, "keyboard": 74.5, "mouse": 29.9, "monitor": 219.0, "phone case": 17.5, "usb cable": 9.9,
    "backpack": 64.0, "water bottle": 19.5, "running shoes": 109.0, "rain jacket": 94.0, "socks": 7.9, "scarf": 24.0,
    "novel": 12.8, "cookbook": 27.5, "board game": 36.0, "puzzle": 18.9, "plant pot": 11.4, "candle": 13.0,
    "frying pan": 44.0, "chef knife": 58.0, "tablet": 329.0, "camera": 449.0, "laptop": 899.0,
}  # fmt: skip
"""Prices."""

POPULARITY = [max(1.0, 60 / price**0.62) for price in GOODS.values()]
"""Cheap products sell more often."""
