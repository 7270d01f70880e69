/** Bodies of `POST /api/add-git-providers` that the documents show. */
export const ADD_GIT_PROVIDERS_EXAMPLES = {
  github: {
    summary: 'A token for github.com',
    value: { provider_tokens: { github: { token: 'ghp_exampleExampleExampleExampleExample1' } } },
  },
  selfManaged: {
    summary: 'A token for a self-managed GitLab that the operator has allowed',
    value: { provider_tokens: { gitlab: { token: 'glpat-exampleExample1', host: 'git.example.com' } } },
  },
  bitbucket: {
    summary: 'An API token for Bitbucket Cloud, with the email address it belongs to',
    value: { provider_tokens: { bitbucket: { token: 'ada@example.com:ATATTexampleExample' } } },
  },
  remove: {
    summary: 'Remove one token, keep the others',
    value: { provider_tokens: { gitlab: null } },
  },
};

/** Answers of `POST /api/add-git-providers` that the documents show. */
export const GIT_PROVIDERS_STORED_EXAMPLES = {
  verified: { summary: 'The provider knows the token', value: { message: 'Git providers stored' } },
  unverified: {
    summary: 'The provider could not be asked',
    value: {
      message: 'Git providers stored',
      warnings: [
        {
          provider: 'gitlab',
          code: 'unavailable',
          detail: 'The gitlab token was stored but not verified: the provider could not be reached.',
        },
      ],
    },
  },
};
