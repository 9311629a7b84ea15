from tests.sinks.lakes.s3 import s3_server as s3_server
