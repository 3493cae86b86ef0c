"""The jars by which Spark reaches S3: Hadoop's client and the parts of Amazon's SDK it uses.

Hadoop names one bundle of the whole SDK, fifty times as large. What Spark ships already, such as
netty and its HTTP client, is left out.
"""

from __future__ import annotations

from collections.abc import Iterable

from deltaworks.config.object_stores import StoreAccess
from deltaworks.engines.spark.versions import Jar

_FILES = {
    ("org.apache.hadoop", "3.5.0"): """
hadoop-aws 66bd9eefb938b1a1657487324b63c13df2d8b17164a1dd24e0ef37b905bc5baa 938071
""",
    ("software.amazon.awssdk", "2.35.4"): """
annotations 6f36bd87155d1dd85d6efbdd29e532e3759a022211feb71affebee1aa34f04b8 13758
apache-client 6eade21b482724ed0a4613eaa95d20e47e7a81304bd28538ac427fece94a7740 77013
arns c63cc29f76a8527e9e10b621703163df541dc5cb315508dc2898518602c75380 16323
auth 6b601323004833fb4a857ffc95db4795e0e6320eb93e64b1246c655c9ff04994 241952
aws-core fdb5fc8f1a48d97fa7d04d3460fb42f6973c7b1bbe1b9d317871ef0162bcb623 192161
aws-query-protocol 9b4cf9b78977cc9f5b4ceae9c435dedbde6a055a0f8d9e053eaca945715e2a9f 69369
aws-xml-protocol 4f59176da2522c357b1993e4a890fde529f12f365795ef86269bde4a3984cd0d 102272
checksums 94464af4374d08ecf33ca06ed4d03e1615529e547726e26b56abacefbeee7948 69585
checksums-spi 88b5af85ac2d3c862be8856be4e683ab31932e4a5a3c1c45af864d2671ac7cec 8044
crt-core 2c6aaa17bf9ccbb9d962dded4351e73decb197e3c5519970e0dae17e05d3df62 17774
endpoints-spi ef02441bda916959b8341290b49c68cc35538e1ad6f8629b75d8334dc6653e00 13168
http-auth 3ec933a06e751a05e195eb3589209e23c44e1897263b6fcae34ef4cc63cd4491 17475
http-auth-aws c4acb92fdec90bfd9b67bfab8e41b69cd152c03cacc10281a8ab464791856e01 171754
http-auth-aws-eventstream 709107552f302be3fa9e05969a3779f5c0f07fb809e6fa1fa571a6f0c61326dd 8705
http-auth-spi 4495463406bb98eb136f2c3f3604ed5f08ec9974ebc3f34f2121b20679f61d5c 48042
http-client-spi 728be89b2a07b595edb0adee3a2cbbbdd4cb1f4caddde0d08c3979fe2620dedb 91685
identity-spi 188d73db7d4e2361654bc3c5a1b3eaeb445d0500fb012cc46c5d67975adf97bf 30963
json-utils 80d67a6bb3e7eb49c7d4b6e4ba4c1463ed7da0192b795158328602dc131c5ecc 33225
metrics-spi c2a4ee90a21081317e2e6eba0c414d05d3d518aed2f86b1c1710a7367b450487 27262
netty-nio-client b82f8b33e5c85273a47da45ede884d7ccb31c9c2f69e6910a76c5c48fa1275dc 292688
profiles 0f4ef7ca72ccd80dd49ebeaf7f3ce60a7d7a00da59a91aeeae6e91052bbacbd8 50524
protocol-core f2532eca6ba2142fe4821d5decb03c83a3e15dc8bfae2240e7f2efa75f9868b5 44371
regions 77eae87b34ce96ecdf916a9bc06684dbeafcb6d38ef0513285fa5d5d6d41f5ca 962286
retries f99fb2f8c66d7e859955b3542d3af8f9de8f23a21d5e3250f0f2c5f18487e469 66309
retries-spi 668638751d059c527ddd41ffa4dcebe36a7c14860ed56776df09b861c14dc7dd 31487
s3 f23532c5223be9b0bfec0d72837ed09ed34dbdf8022818ba145b20076a78b4bc 4084242
s3-transfer-manager 0eec78870b3d0abc509a847072cf963cb2ae6e360dc6161a9449b3398c470476 251117
sdk-core fa559a4ce598852f3519c8f3b36250f583b0858a7611eedc4a81997778c617f4 1040729
sts 8d0f7816d3f96e3f00249f5d054d926e939a104bcf9ef57676ee0b16c59684d2 545150
third-party-jackson-core 32f4252c6c2df8f3a4aff885e6dc77024ad6b4cb48455d07b461ec30c41643ea 535001
utils 642aeef536a071668f0b772f05f9d21573abf6955e7b6fb5fdb893760cca10e8 241618
utils-lite e004806def5e22ec98edc48a133ff3317166255e1ba29d93d129e9fdfa64a7be 8798
""",
    ("software.amazon.eventstream", "1.0.1"): """
eventstream 0c37d8e696117f02c302191b8110b0d0eb20fa412fce34c3a269ec73c16ce822 30193
""",
    ("org.reactivestreams", "1.0.4"): """
reactive-streams f75ca597789b3dac58f61857b9ac2e1034a68fa672db35055a8fb4509e325f28 11640
""",
    ("software.amazon.s3.analyticsaccelerator", "1.3.1"): """
analyticsaccelerator-s3 4959a9747cbb479c73c3ffbcd479bee5b014f8b2880994585a8693fb9d24675e 2473459
""",
}
"""By group and version: a name, a checksum and a size in each line."""

S3_JARS = tuple(
    Jar(group=group, artifact=name, version=version, sha256=digest, size_bytes=int(size))
    for (group, version), lines in _FILES.items()
    for name, digest, size in map(str.split, lines.strip().splitlines())
)


def store_jars(stores: Iterable[StoreAccess]) -> tuple[Jar, ...]:
    """The jars that these stores need beside those every session has."""
    return S3_JARS if any(access.kind == "s3" for access in stores) else ()
