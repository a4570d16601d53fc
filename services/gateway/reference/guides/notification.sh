# The body as it came in the file body, its headers in id, timestamp and signatures.
key=$(printf %s "${HUB_WEBHOOK_SECRET#whsec_}" | openssl base64 -d -A | od -An -v -tx1 | tr -d ' \n')
want=v1,$({ printf '%s.%s.' "$id" "$timestamp"; cat body; } |
  openssl dgst -sha256 -mac HMAC -macopt "hexkey:$key" -binary | openssl base64 -A)
age=$(($(date +%s) - timestamp))
case " $signatures " in *" $want "*) ;; *) echo "not from Hub" >&2; exit 1 ;; esac
[ "$age" -lt 300 ] && [ "$age" -gt -300 ] || { echo "too old" >&2; exit 1; }
