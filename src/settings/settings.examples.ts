/** Bodies of `POST /api/settings` that the documents show. */
export const SETTINGS_EXAMPLES = {
  first: {
    summary: 'Language, model and author of commits',
    value: {
      language: 'en',
      agent: 'CodeActAgent',
      llm_model: 'provider/model-1',
      llm_api_key: 'llm-key-example',
      max_iterations: 100,
      confirmation_mode: false,
      git_user_name: 'Ada Lovelace',
      git_user_email: 'ada@example.com',
    },
  },
  clear: {
    summary: 'Clear what was set: null, or blank text where null keeps the stored value',
    value: { max_budget_per_task: null, llm_base_url: '' },
  },
  toolServers: {
    summary: 'Tool servers',
    value: {
      mcp_config: {
        sse_servers: [{ url: 'https://mcp.example.com/sse', api_key: 'mcp-key-example' }],
        stdio_servers: [
          {
            name: 'files',
            command: 'npx',
            args: ['-y', 'files-server'],
            env: { API_TOKEN: 'token-example' },
          },
        ],
        shttp_servers: [],
      },
    },
  },
  tokensAndSecrets: {
    summary: 'A git-provider token and a custom secret along with settings',
    value: {
      language: 'en',
      secrets_store: {
        provider_tokens: { github: { token: 'ghp_exampleExampleExampleExampleExample1' } },
        custom_secrets: {
          DEPLOY_TOKEN: { secret: 'secret-example', description: 'Token of the deployment service' },
        },
      },
    },
  },
};
