package io.hudioperator.commit;

import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import java.util.regex.Pattern;
import org.apache.hudi.common.config.ConfigProperty;
import org.apache.hudi.config.HoodieWriteConfig;

/**
 * Every option that classes of Hudi's jar define, found by inspecting each class that constructs
 * one.
 */
final class HudiOptions {
    private static final String DEFINES = "org/apache/hudi/common/config/ConfigProperty$PropertyBuilder";

    private static final Pattern NAME = Pattern.compile("_?hoodie\\.[A-Za-z0-9_.]+");

    final Map<String, ConfigProperty<?>> found = new TreeMap<>();
    /**
     * Classes that cannot be loaded in the tests, because their dependencies are in no jar of the
     * tests.
     */
    final Set<String> unreadable = new TreeSet<>();
    /** Strings in those classes that look like names of options. */
    final Set<String> named = new TreeSet<>();

    /** Inspects the jar that the tests and the image use. */
    static HudiOptions ofTheJar() throws Exception {
        HudiOptions options = new HudiOptions();
        try (JarFile jar = new JarFile(HoodieWriteConfig.class
                .getProtectionDomain()
                .getCodeSource()
                .getLocation()
                .getPath())) {
            for (JarEntry entry : Collections.list(jar.entries())) {
                if (entry.getName().startsWith("org/apache/hudi/")
                        && entry.getName().endsWith(".class")) {
                    String bytes = new String(jar.getInputStream(entry).readAllBytes(), StandardCharsets.ISO_8859_1);
                    String name = entry.getName().replace(".class", "").replace('/', '.');
                    if (bytes.contains(DEFINES) && !options.add(name)) {
                        NAME.matcher(bytes).results().forEach(match -> options.named.add(match.group()));
                    }
                }
            }
        }
        return options;
    }

    /**
     * Adds the options that a class defines: in its static fields or, for a Scala object, in the
     * fields of its single instance. Returns false when the class cannot be loaded.
     */
    boolean add(String className) throws ReflectiveOperationException {
        try {
            Class<?> type = Class.forName(className, false, HudiOptions.class.getClassLoader());
            for (Field field : type.getDeclaredFields()) {
                if (ConfigProperty.class.isAssignableFrom(field.getType())) {
                    field.setAccessible(true);
                    Object owner = Modifier.isStatic(field.getModifiers())
                            ? null
                            : type.getField("MODULE$").get(null);
                    ConfigProperty<?> property = (ConfigProperty<?>) field.get(owner);
                    found.putIfAbsent(property.key(), property);
                }
            }
            return true;
        } catch (LinkageError | NoSuchFieldException e) {
            unreadable.add(className);
            return false;
        }
    }

    /** Names, including alternative names of an option, that the list does not contain. */
    List<String> without(Set<String> listed) {
        Set<String> all = new HashSet<>(named);
        all.addAll(found.keySet());
        found.values().forEach(p -> all.addAll(p.getAlternatives()));
        all.removeAll(listed);
        List<String> missing = new ArrayList<>(all);
        Collections.sort(missing);
        return missing;
    }
}
