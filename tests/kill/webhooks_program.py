"""A dispatcher that gets killed: it sends what is in the log until every delivery was taken."""

from __future__ import annotations

import sys
import time

from potok.log.open import open_broker
from potok.runtime.webhooks.dispatcher import Dispatcher
from potok.runtime.webhooks.journal import WebhookJournal, WebhookSelection
from potok.runtime.webhooks.records import Outcome
from potok.sinks.webhooks.retry_schedule import RetrySchedule
from potok.sinks.webhooks.webhooks import WebhookEndpoint, WebhookTarget

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
STEP = "orders.to_webhook"

if __name__ == "__main__":
    where, url, epoch, count = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    broker = open_broker(where)
    endpoint = WebhookEndpoint(url, (SECRET,), "shop")
    target = WebhookTarget((endpoint,), RetrySchedule((20,) * 50), 4, 2_000, 86_400_000, with_key=False)
    dispatcher = Dispatcher(broker, "q", epoch, {STEP: target})
    journal = WebhookJournal(broker, "q")
    while len(journal.latest(WebhookSelection(outcome=Outcome.DELIVERED))) < count:
        time.sleep(0.02)
    dispatcher.close()
