import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.nio.ByteBuffer;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.Serializer;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;

/**
 * The typed topology of the benchmarks as a Kafka Streams program: large orders counted and summed by user, on two
 * threads with RocksDB. Prints how many records a second went through after the first part, which warms it up.
 *
 * Arguments: bootstrap servers, guarantee, records in the topic, records of the first part, state directory, output
 * topic.
 */
public final class Totals {
    record Total(long n, double sum) {}

    static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        long records = Long.parseLong(args[2]);
        long warmUp = Long.parseLong(args[3]);
        AtomicLong seen = new AtomicLong();
        AtomicLong began = new AtomicLong();
        CountDownLatch done = new CountDownLatch(1);

        StreamsBuilder builder = new StreamsBuilder();
        builder.stream("orders", Consumed.with(Serdes.String(), Serdes.ByteArray()))
            .mapValues(Totals::parsed)
            .peek((user, order) -> {
                long count = seen.incrementAndGet();
                if (count == warmUp) {
                    began.set(System.nanoTime());
                } else if (count == records) {
                    double seconds = (System.nanoTime() - began.get()) / 1e9;
                    System.out.println("RATE " + (records - warmUp) / seconds);
                    done.countDown();
                }
            })
            .filter((user, order) -> order.get("amount").asDouble() > 20)
            .groupByKey(Grouped.with(Serdes.String(), json()))
            .aggregate(
                () -> new Total(0, 0.0),
                (user, order, total) -> new Total(total.n() + 1, total.sum() + order.get("amount").asDouble()),
                Materialized.with(Serdes.String(), totals()))
            .toStream()
            .mapValues(total -> "{\"n\":" + total.n() + ",\"total\":" + total.sum() + "}")
            .to(args[5], Produced.with(Serdes.String(), Serdes.String()));

        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, "totals-" + System.nanoTime());
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, args[0]);
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, args[1]);
        settings.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, 2);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, args[4]);
        settings.put(StreamsConfig.REPLICATION_FACTOR_CONFIG, 1);
        settings.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
        KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        streams.start();
        done.await();
        streams.close();
    }

    static JsonNode parsed(byte[] value) {
        try {
            return JSON.readTree(value);
        } catch (java.io.IOException error) {
            throw new IllegalArgumentException(error);
        }
    }

    static Serde<JsonNode> json() {
        Serializer<JsonNode> write = (topic, node) -> node == null ? null : node.toString().getBytes();
        Deserializer<JsonNode> read = (topic, data) -> data == null ? null : parsed(data);
        return Serdes.serdeFrom(write, read);
    }

    static Serde<Total> totals() {
        Serializer<Total> write = (topic, total) ->
            total == null ? null : ByteBuffer.allocate(16).putLong(total.n()).putDouble(total.sum()).array();
        Deserializer<Total> read = (topic, data) -> {
            if (data == null) {
                return null;
            }
            ByteBuffer buffer = ByteBuffer.wrap(data);
            return new Total(buffer.getLong(), buffer.getDouble());
        };
        return Serdes.serdeFrom(write, read);
    }
}
