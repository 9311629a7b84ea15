"""Exit with 0 if the server of this container is alive: its batch loop makes progress.

POTOK_HEALTH_URL names another address, such as https://127.0.0.1:8088/livez with TLS, or the port of --metrics.
"""

import os
import ssl
import sys
import urllib.error
import urllib.request

URL = os.environ.get("POTOK_HEALTH_URL", "http://127.0.0.1:8088/livez")

# The certificate is for the name by which clients call the server, not for the loopback address.
context = ssl.create_default_context()
context.check_hostname = False
context.verify_mode = ssl.CERT_NONE
without_proxy = urllib.request.build_opener(
    urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
)

try:
    with without_proxy.open(URL, timeout=8) as response:
        print(response.read(1_000).decode(errors="replace"))
except urllib.error.HTTPError as error:
    print(f"{URL}: {error.code} {error.read(1_000).decode(errors='replace')}")
    sys.exit(1)
except OSError as error:
    print(f"{URL}: {error}")
    sys.exit(1)
