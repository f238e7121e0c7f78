// SPDX-License-Identifier: GPL-2.0

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.processor.PunctuationType;
import org.apache.kafka.streams.processor.TopicNameExtractor;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

/**
 * Delays records with Kafka Streams, as its manual suggests: a store, which is ordered by due time
 * and has a changelog, and a punctuator by the wall clock. It takes the headers of twheel-relay
 * {@code twheel-target} and {@code twheel-deliver-at}.
 *
 * <p>Usage: StreamsDelay TOPIC STORE NAME=VALUE... with the settings of Kafka Streams; STORE is
 * "persistent" or "memory".
 */
final class StreamsDelay implements Processor<byte[], byte[], byte[], byte[]> {
    private static final String STORE = "delayed";
    private static final Duration INTERVAL = Duration.ofMillis(10);
    private static final int KEY_BYTES = 2 * Long.BYTES;

    private ProcessorContext<byte[], byte[]> context;
    private KeyValueStore<Bytes, byte[]> store;

    /** All that was due until then is delivered; deleted keys would be passed over again. */
    private long deliveredMs;

    @Override
    public void init(ProcessorContext<byte[], byte[]> context) {
        this.context = context;
        store = context.getStateStore(STORE);
        context.schedule(INTERVAL, PunctuationType.WALL_CLOCK_TIME, this::deliver);
    }

    @Override
    public void process(Record<byte[], byte[]> record) {
        long dueMs = Long.parseLong(header(record.headers(), "twheel-deliver-at"));

        if (dueMs <= context.currentSystemTimeMs()) {
            context.forward(record);
        } else {
            store.put(key(dueMs, context.recordMetadata().orElseThrow().offset()), pack(record));
            deliveredMs = Math.min(deliveredMs, dueMs);
        }
    }

    private void deliver(long nowMs) {
        try (KeyValueIterator<Bytes, byte[]> due =
                store.range(key(deliveredMs, 0), key(nowMs, Long.MAX_VALUE))) {
            while (due.hasNext()) {
                var entry = due.next();
                context.forward(unpack(entry.value));
                store.delete(entry.key);
            }
        }
        deliveredMs = nowMs;
    }

    // --- how records are stored ---

    private static Bytes key(long dueMs, long offset) {
        return Bytes.wrap(
                ByteBuffer.allocate(KEY_BYTES).putLong(dueMs).putLong(offset).array());
    }

    private static void write(DataOutputStream out, byte[] bytes) throws IOException {
        out.writeInt(bytes == null ? -1 : bytes.length);
        if (bytes != null) {
            out.write(bytes);
        }
    }

    private static byte[] read(DataInputStream in) throws IOException {
        int length = in.readInt();
        return length < 0 ? null : in.readNBytes(length);
    }

    private static byte[] pack(Record<byte[], byte[]> record) {
        var bytes = new ByteArrayOutputStream();

        try (var out = new DataOutputStream(bytes)) {
            out.writeLong(record.timestamp());
            write(out, record.key());
            write(out, record.value());
            for (Header header : record.headers()) {
                out.writeUTF(header.key());
                write(out, header.value());
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return bytes.toByteArray();
    }

    private static Record<byte[], byte[]> unpack(byte[] bytes) {
        try (var in = new DataInputStream(new ByteArrayInputStream(bytes))) {
            long timestamp = in.readLong();
            byte[] key = read(in);
            byte[] value = read(in);
            var headers = new RecordHeaders();
            while (in.available() > 0) {
                headers.add(in.readUTF(), read(in));
            }
            return new Record<>(key, value, timestamp, headers);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    // --- the program ---

    private static String header(Headers headers, String name) {
        return new String(headers.lastHeader(name).value(), StandardCharsets.UTF_8);
    }

    private static Topology topology(String topic, boolean isPersistent) {
        var supplier =
                isPersistent
                        ? Stores.persistentKeyValueStore(STORE)
                        : Stores.inMemoryKeyValueStore(STORE);
        TopicNameExtractor<byte[], byte[]> target =
                (key, value, record) -> header(record.headers(), "twheel-target");

        return new Topology()
                .addSource("in", new ByteArrayDeserializer(), new ByteArrayDeserializer(), topic)
                .addProcessor("delay", StreamsDelay::new, "in")
                .addStateStore(
                        Stores.keyValueStoreBuilder(supplier, Serdes.Bytes(), Serdes.ByteArray())
                                .withLoggingEnabled(Map.of()),
                        "delay")
                .addSink(
                        "out", target, new ByteArraySerializer(), new ByteArraySerializer(),
                        "delay");
    }

    public static void main(String[] arguments) {
        var settings = new Properties();

        for (int i = 2; i < arguments.length; i++) {
            String[] setting = arguments[i].split("=", 2);
            settings.setProperty(setting[0], setting[1]);
        }
        var streams =
                new KafkaStreams(
                        topology(arguments[0], arguments[1].equals("persistent")),
                        new StreamsConfig(settings));
        streams.setUncaughtExceptionHandler(
                problem -> StreamThreadExceptionResponse.REPLACE_THREAD);
        Runtime.getRuntime().addShutdownHook(new Thread(streams::close));
        streams.start();
    }
}
