"""Names of the JVM's classes, which Python looks up once.

py4j asks the JVM anew for each part of a name: for `jvm.org.apache.hudi.Foo` whether `org`,
`org.apache` and `org.apache.hudi` are classes. They are not, and each answer costs a search through
all jars of the class path: this was an eighth of the driver's processor time of a small commit.
"""

from __future__ import annotations

from typing import Any

from py4j.java_gateway import JavaClass, JavaPackage, JVMView


def keep(jvm: JVMView) -> None:
    """Let this view of a JVM keep the classes and packages that it finds.

    PySpark has the same object in several places, so the object itself changes. A name that begins
    with a capital letter and is no class yet may become one (`addJar`, `java_import`): it is not
    kept.
    """
    jvm.__class__ = _View


class _View(JVMView):  # type: ignore[misc]  # py4j has no types
    def __getattr__(self, name: str) -> Any:
        return _kept(self, name, super().__getattr__(name))


class _Package(JavaPackage):  # type: ignore[misc]
    def __getattr__(self, name: str) -> Any:
        return _kept(self, name, super().__getattr__(name))


def _kept(parent: JVMView | JavaPackage, name: str, found: Any) -> Any:
    """The found class or package; it is an attribute of its parent from now on."""
    if type(found) is JavaPackage and name[:1].islower():
        found = _Package(found._fqn, found._gateway_client, found._jvm_id)
        parent.__dict__[name] = found
    elif isinstance(found, JavaClass):
        parent.__dict__[name] = found
    return found
