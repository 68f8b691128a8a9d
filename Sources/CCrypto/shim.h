#ifndef CAIRN_CCRYPTO_SHIM_H
#define CAIRN_CCRYPTO_SHIM_H

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/sha.h>
#include <openssl/x509.h>

// Macros over variadic or untyped functions, which Swift does not import.
static inline EVP_PKEY *cairn_p256_generate(void) { return EVP_EC_gen("P-256"); }

static inline size_t cairn_bio_contents(BIO *bio, char **contents) {
  long count = BIO_get_mem_data(bio, contents);
  return count > 0 ? (size_t)count : 0;
}

#endif
