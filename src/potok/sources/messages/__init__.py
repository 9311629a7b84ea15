"""Messages of brokers and sockets: RabbitMQ, MQTT, ZeroMQ and NNG."""
