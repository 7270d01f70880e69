import { useState } from 'react';
import { useHistoryState } from 'wouter/use-browser-location';
import { CheckField, type Fields, Form, given, SearchField, TextArea } from '../ui/form.js';
import { choiceOf, FOLLOW, ModelAndAgent, StartProgress, useStart } from '../work/start.js';
import { BranchField, useRepositories } from './repository-fields.js';

/** What a form begins with that another page has led to. */
export type Draft = { message: string; repository: string; branch: string };

const NOTHING: Draft = { message: '', repository: '', branch: '' };

const MESSAGE = { label: 'Message', rows: 3, required: true, placeholder: 'What should the agent do?' };
const REPOSITORY = { label: 'Repository', placeholder: 'Search, or none' };

/** Starts a conversation in the user's own words, with or without a repository. */
export function NewConversation() {
  const state = useHistoryState<{ draft?: Draft } | null>();
  const draft = state?.draft ?? NOTHING;
  const start = useStart();
  const [repository, setRepository] = useState(draft.repository);
  const { choices, status, providerOf } = useRepositories(repository);
  const provider = providerOf(repository);
  const first = repository === draft.repository ? draft.branch : '';
  const send = async (field: Fields) => {
    const place = given({ selected_repository: field('repository'), selected_branch: field('branch') });
    const host = repository === '' || provider === undefined ? {} : { git_provider: provider };
    const content = [{ text: field('message') }];
    start.begin({ initial_message: { content, run: true }, ...place, ...host, ...choiceOf(field) });
  };
  return (
    <details className="panel" open={draft !== NOTHING || undefined}>
      <summary>New conversation</summary>
      <Form name="New conversation" submit="Start conversation" onSubmit={send} keeps isBusy={start.isUnderWay}>
        <TextArea {...MESSAGE} defaultValue={draft.message} />
        <div className="columns">
          <SearchField {...REPOSITORY} value={repository} onText={setRepository} choices={choices} hint={status} />
          <BranchField key={repository} repository={repository} provider={provider} first={first} />
          <ModelAndAgent />
        </div>
        <CheckField {...FOLLOW} />
      </Form>
      <StartProgress start={start} />
    </details>
  );
}
