"""The pattern in Flink SQL, in a cluster inside this process: `fraud.py FILES OUT`.

Two task slots, as many as the machine has processors; state on the heap, which is Flink's fastest; objects reused
between operators; a checkpoint every 10 seconds, so that state and output are exactly-once. Prints the time from the
first record to the last, by the clock of the job.
"""

import sys

from pyflink.common import Configuration
from pyflink.table import EnvironmentSettings, TableEnvironment

SETTINGS = {
    "parallelism.default": "2",
    "taskmanager.numberOfTaskSlots": "2",
    "taskmanager.memory.process.size": "3g",
    "state.backend.type": "hashmap",
    "pipeline.object-reuse": "true",
    "pipeline.cep.sharedbuffer.cache.entry-slots": "1000000",
    "pipeline.cep.sharedbuffer.cache.event-slots": "1000000",
    "execution.checkpointing.interval": "10 s",
    "execution.checkpointing.mode": "EXACTLY_ONCE",
    "table.exec.source.idle-timeout": "1 s",
}

SOURCE = """
CREATE TABLE payments (payment_id STRING, user_id STRING, amount BIGINT, paid_at BIGINT,
    event_time AS TO_TIMESTAMP_LTZ(paid_at, 3), WATERMARK FOR event_time AS event_time - INTERVAL '5' SECOND)
WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'json')
"""

SINK = """
CREATE TABLE alerts (user_id STRING, first_small BIGINT, smalls BIGINT, big BIGINT)
WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'json')
"""

MATCH = """
INSERT INTO alerts SELECT user_id, first_small, smalls, last_big FROM payments MATCH_RECOGNIZE (
    PARTITION BY user_id
    ORDER BY event_time
    MEASURES FIRST(SMALL.amount) AS first_small, COUNT(SMALL.amount) AS smalls, BIG.amount AS last_big
    ONE ROW PER MATCH
    AFTER MATCH SKIP PAST LAST ROW
    PATTERN (SMALL{3,} BIG) WITHIN INTERVAL '10' MINUTE
    DEFINE SMALL AS SMALL.amount < 10, BIG AS BIG.amount > 100)
"""


def main() -> None:
    files, out = sys.argv[1:]
    configuration = Configuration()
    for name, value in SETTINGS.items():
        configuration.set_string(name, value)
    settings = EnvironmentSettings.new_instance().in_streaming_mode().with_configuration(configuration).build()
    tables = TableEnvironment.create(settings)
    tables.execute_sql(SOURCE.format(path=files))
    tables.execute_sql(SINK.format(path=out))
    client = tables.execute_sql(MATCH).get_job_client()
    result = client.get_job_execution_result().result()
    print("RUNTIME", result.get_net_runtime())


if __name__ == "__main__":
    main()
