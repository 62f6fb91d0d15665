"""Two certificates with their keys, made for these tests and used nowhere else; valid for a hundred years."""

from __future__ import annotations

from typing import NamedTuple


class Pair(NamedTuple):
    """PEM texts; the certificate's common name is the name of its constant, in small letters."""

    certificate: str
    key: str


FIRST = Pair(
    certificate="""\
-----BEGIN CERTIFICATE-----
MIIBeDCCAR2gAwIBAgIUEyj/U1huobCXFJTQLOMY8TdCCK0wCgYIKoZIzj0EAwIw
EDEOMAwGA1UEAwwFZmlyc3QwIBcNMjYxMTMwMTkzNjM0WhgPMjEyNjExMDYxOTM2
MzRaMBAxDjAMBgNVBAMMBWZpcnN0MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE
qhgpakjj56G7HK7/ody8W4eC+LeWiRzHIM2O3gXYtrrl4IXNgKwbeQbLMnUy/z37
Vu1koVDWsmKnkFe8L3859qNTMFEwHQYDVR0OBBYEFKNlcpYzQWvO0HLz7PTKss5t
wTACMB8GA1UdIwQYMBaAFKNlcpYzQWvO0HLz7PTKss5twTACMA8GA1UdEwEB/wQF
MAMBAf8wCgYIKoZIzj0EAwIDSQAwRgIhAKuvUGgs2/P2Ndr0hQvWCh27zPRIJo5b
cqlDn6iFtJREAiEApEb3ofGWs0iqCgLbbPoEZv2rzcQ6cQuqc92v57zz9Jo=
-----END CERTIFICATE-----
""",
    key="""\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgVq8eQoOjxB2gH/8w
JFkg/dQRPS389qhlTiFsBfHcghGhRANCAASqGClqSOPnobscrv+h3Lxbh4L4t5aJ
HMcgzY7eBdi2uuXghc2ArBt5BssydTL/PftW7WShUNayYqeQV7wvfzn2
-----END PRIVATE KEY-----
""",
)

SECOND = Pair(
    certificate="""\
-----BEGIN CERTIFICATE-----
MIIBeTCCAR+gAwIBAgIUOGaaVhxCL5mIMirDpOWxpapeKskwCgYIKoZIzj0EAwIw
ETEPMA0GA1UEAwwGc2Vjb25kMCAXDTI2MTEzMDE5MzYzNFoYDzIxMjYxMTA2MTkz
NjM0WjARMQ8wDQYDVQQDDAZzZWNvbmQwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNC
AASkiiNNtXjTYijjNQTL2B0I8IXsLqeXNLzqLcUBK+wMUO5HCdmjDaCTa4ZIiTUd
J+nh9EuBHgVYtWLMRCbpkznqo1MwUTAdBgNVHQ4EFgQUFTvIOegwG5Dz6RTCkR10
8rzCdkUwHwYDVR0jBBgwFoAUFTvIOegwG5Dz6RTCkR108rzCdkUwDwYDVR0TAQH/
BAUwAwEB/zAKBggqhkjOPQQDAgNIADBFAiEAgHmI+DbXqaGe6Gr6NE4YbzOCAxmO
3aXyze/RFaBhaegCICLSSxa7iysQpvd94PKzQxm2FaGI6CZOtM7AJViQpGUE
-----END CERTIFICATE-----
""",
    key="""\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgYcIsBYFlKC6vIQH8
LgkdvhWquUN1moNNrhwz+ZYNYTOhRANCAASkiiNNtXjTYijjNQTL2B0I8IXsLqeX
NLzqLcUBK+wMUO5HCdmjDaCTa4ZIiTUdJ+nh9EuBHgVYtWLMRCbpkznq
-----END PRIVATE KEY-----
""",
)
