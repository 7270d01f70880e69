require('../../../scripts/lib/typescript-loader.cjs');

/** Jest calls what this file exports once, before tests that keep small files for a while. */
module.exports = async () => {
  // Imported, as tests in this process import the same sources: a `require` would pass Jest's own compiler and make
  // second copies of them.
  const { makeFastTemporaryFolder } = await import('../fast-folder.ts');
  process.env.SLIPWAY_TEST_TEMPORARY ??= (await makeFastTemporaryFolder()) ?? '';
};
