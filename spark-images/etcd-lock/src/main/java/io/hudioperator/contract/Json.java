package io.hudioperator.contract;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.InputStream;

/** JSON as Spark's own Jackson reads and writes it. */
public final class Json {
    private static final ObjectMapper MAPPER = new ObjectMapper();

    private Json() {}

    public static ObjectNode object() {
        return MAPPER.createObjectNode();
    }

    public static ArrayNode array() {
        return MAPPER.createArrayNode();
    }

    /**
     * Returns an empty object when the text is not a JSON object: a person may have written a value
     * in etcd by hand.
     */
    public static JsonNode parse(String text) {
        try {
            JsonNode node = MAPPER.readTree(text);
            return node == null || !node.isObject() ? object() : node;
        } catch (JsonProcessingException e) {
            return object();
        }
    }

    static JsonNode read(InputStream in) throws IOException {
        return MAPPER.readTree(in);
    }

    public static String text(JsonNode node, String field) {
        JsonNode value = node.get(field);
        return value == null || value.isNull() ? "" : value.asText();
    }
}
