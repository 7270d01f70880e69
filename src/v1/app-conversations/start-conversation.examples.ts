/** Bodies of `POST /api/v1/app-conversations` that the documents show. */
export const START_CONVERSATION_EXAMPLES = {
  plain: {
    summary: 'A task in a repository',
    value: {
      initial_message: { content: [{ type: 'text', text: 'Add a test for the parser.' }] },
      selected_repository: 'octo/app',
      selected_branch: 'main',
      git_provider: 'github',
    },
  },
  suggestedTask: {
    summary: 'A suggested task, as GET /api/user/suggested-tasks gave it',
    value: {
      suggested_task: {
        git_provider: 'github',
        task_type: 'FAILING_CHECKS',
        repo: 'octo/app',
        issue_number: 15,
        title: 'Retry card payments',
      },
    },
  },
  withSecrets: {
    summary: 'Without a repository, with an image, a model and a secret for this conversation',
    value: {
      title: 'Screen shots',
      llm_model: 'provider/model-1',
      initial_message: {
        content: [
          { type: 'text', text: 'What is wrong on this page?' },
          { type: 'image', image_urls: ['https://images.example.com/screen.png'] },
        ],
      },
      secrets: { DEPLOY_TOKEN: 'secret-example' },
    },
  },
};
