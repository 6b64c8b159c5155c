# Ends with 0 when the broker answers a request of Kafka's protocol (ApiVersions, version 0), which it does once it works.
# Kafka's own tools would start a Java for each question.
set -e
exec 3<>"/dev/tcp/${1:-127.0.0.1}/${2:-9092}"
printf '\0\0\0\012\0\022\0\0\0\0\0\001\377\377' >&3
# Four bytes of length, the number of the request, and 0: no error.
[ "$(head -c 10 <&3 | tail -c 6 | od -An -tx1 | tr -d ' \n')" = 000000010000 ]
