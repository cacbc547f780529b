// SPDX-License-Identifier: Apache-2.0
#ifndef CARILLON_COPENSSL_SHIM_H
#define CARILLON_COPENSSL_SHIM_H

#include <openssl/ssl.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/provider.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

/* The one-shot SHA256() of OpenSSL 3 looks its algorithm up on every call, which costs more than hashing a short
   identifier; the plain block functions do not, and are what every release up to 3.x carries. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
static inline void carillon_sha256(const void *bytes, size_t count, unsigned char *digest) {
    SHA256_CTX context;
    SHA256_Init(&context);
    SHA256_Update(&context, bytes, count);
    SHA256_Final(digest, &context);
}
#pragma GCC diagnostic pop

/* Macros that Swift cannot import. */
static inline long carillon_bio_memory(BIO *bio, char **bytes) { return BIO_get_mem_data(bio, bytes); }

#endif
