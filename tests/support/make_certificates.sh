#!/bin/sh
# Certificates for tests and benchmarks of TLS, in a folder that is made:
#   ca.pem cert.pem key.pem      an authority, and a certificate of it for localhost and 127.0.0.1
#   expired.pem                  as cert.pem, with the same key, but of last year
#   elsewhere.pem                as cert.pem, but for another host
#   self_signed.pem              as cert.pem, signed by itself
#   server_only.pem              as cert.pem, but only to be called
#   coordinator.pem              as cert.pem, also for coordinator.example
#   spiffe.pem                   as cert.pem, also for spiffe://cluster.example/ns/a/sa/coordinator
#   other_ca.pem other_cert.pem other_key.pem    another authority's
#   revoked.pem                  as coordinator.pem, taken back by ca_crl.pem
#   ca_crl.pem, none_crl.pem, old_crl.pem    the authority's lists: of that one; of nobody; of nobody, and too old
#   other_ca_crl.pem             of the other authority: of nobody
#   between.pem                  an authority that `ca` has signed, with its between_crl.pem; both_crl.pem has ca's, too
#   between_cert.pem between_revoked.pem between_chain.pem    of that: one that holds, one on the list, one with its authority
#   make_certificates.sh FOLDER [HOSTS]    HOSTS are for the certificates, too: IP:10.0.0.1,DNS:a.example
set -eu
mkdir -p "$1"
cd "$1"
exec 2>make_certificates.log

# With all extensions that strict verifiers ask for, as Python 3.13's is.
authority() { # NAME [OPTIONS]
    # shellcheck disable=SC2086
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 \
        -subj "/CN=$1" -addext keyUsage=critical,keyCertSign,cRLSign -keyout "$1_key.pem" -out "$1.pem" ${2:-}
    : >"$1.index"
    cat >"$1.cnf" <<END
[ca]
default_ca = own
[own]
database = $1.index
new_certs_dir = .
certificate = $1.pem
private_key = $1_key.pem
rand_serial = yes
default_md = sha256
default_crl_days = 2
unique_subject = no
policy = any
copy_extensions = copy
x509_extensions = made
[made]
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid:always
[any]
commonName = supplied
END
}

certificate() { # AUTHORITY KEY NAME HOSTS START END [EXTENSION]
    openssl req -new -key "$2" -subj /CN=worker -addext "subjectAltName=$4" ${7:+-addext "$7"} \
        -out request.pem
    openssl ca -batch -notext -config "$1.cnf" -startdate "$5" -enddate "$6" -in request.pem \
        -out "$3"
}

key() {
    openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:prime256v1 -out "$1"
}

yesterday=$(date -u -d yesterday +%Y%m%d%H%M%SZ)
tomorrow=$(date -u -d tomorrow +%Y%m%d%H%M%SZ)
here=DNS:localhost,IP:127.0.0.1${2:+,$2}
authority ca
authority other_ca
authority between "-CA ca.pem -CAkey ca_key.pem"
key key.pem
key other_key.pem
certificate ca key.pem cert.pem "$here" "$yesterday" "$tomorrow"
certificate ca key.pem expired.pem "$here" 20200101000000Z 20200201000000Z
certificate ca key.pem elsewhere.pem DNS:elsewhere.example "$yesterday" "$tomorrow"
certificate ca key.pem server_only.pem "$here" "$yesterday" "$tomorrow" extendedKeyUsage=serverAuth
certificate ca key.pem coordinator.pem "$here,DNS:coordinator.example" "$yesterday" "$tomorrow"
certificate ca key.pem spiffe.pem "$here,URI:spiffe://cluster.example/ns/a/sa/coordinator" "$yesterday" "$tomorrow"
openssl req -x509 -new -key key.pem -days 2 -subj /CN=worker -addext "subjectAltName=$here" \
    -out self_signed.pem
certificate other_ca other_key.pem other_cert.pem "$here" "$yesterday" "$tomorrow"
certificate ca key.pem revoked.pem "$here,DNS:coordinator.example" "$yesterday" "$tomorrow"
list() { # AUTHORITY NAME [OPTIONS]
    # shellcheck disable=SC2086
    openssl ca -gencrl -config "$1.cnf" -out "$2" ${3:-}
}
list ca none_crl.pem
list ca old_crl.pem "-crl_lastupdate 20200101000000Z -crl_nextupdate 20200201000000Z"
list other_ca other_ca_crl.pem
openssl ca -config ca.cnf -revoke revoked.pem
list ca ca_crl.pem
certificate between key.pem between_cert.pem "$here" "$yesterday" "$tomorrow"
certificate between key.pem between_revoked.pem "$here" "$yesterday" "$tomorrow"
openssl ca -config between.cnf -revoke between_revoked.pem
list between between_crl.pem
cat between_cert.pem between.pem >between_chain.pem
cat between_crl.pem ca_crl.pem >both_crl.pem
