const { buildIfNeeded } = require('../../../scripts/lib/build.mjs');

module.exports = () => {
  if (!buildIfNeeded()) {
    throw new Error('the sources do not compile, so there is no service for the page');
  }
};
