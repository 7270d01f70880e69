import { useQueries, useQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { api, bodyOf, by, meQuery, type Provider, providerName } from '../api/client.js';
import { type Choice, SearchField } from '../ui/form.js';
import { recentQuery } from './conversation-queries.js';

type Repository = Choice & { provider: Provider };

const TYPING_MS = 250;
const MOST = 30;

/** The text after a pause in typing: hosts limit the rate of requests. */
function useTyped(text: string): string {
  const [typed, setTyped] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setTyped(text), TYPING_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return typed;
}

function fitting<T extends Choice>(choices: readonly T[], text: string): T[] {
  return choices.filter(({ name }) => name.toLowerCase().includes(text.trim().toLowerCase()));
}

/** The first of each. */
function distinct<T extends Choice>(choices: readonly T[]): T[] {
  const isSame = (one: T, other: T): boolean => one.name === other.name && one.note === other.note;
  return choices.filter((choice, index) => choices.findIndex((other) => isSame(other, choice)) === index);
}

/** Repositories of all connected hosts that fit a text, those that were used last before the others. */
export function useRepositories(text: string) {
  const typed = useTyped(text);
  const hosts = Object.keys(useQuery(meQuery).data?.provider_tokens_set ?? {}) as Provider[];
  const asked = useQueries({
    queries: hosts.map((provider) => ({
      queryKey: ['repositories', provider, typed],
      queryFn: () => bodyOf(api.GET('/api/v1/git/repositories/search', by({ provider, query: typed, limit: MOST }))),
      staleTime: 60_000,
    })),
  });
  const recent = (useQuery(recentQuery).data?.items ?? []).flatMap(
    ({ selected_repository: name, git_provider: provider }) =>
      name === null || provider === null ? [] : [{ name, provider, note: providerName(provider) }],
  );
  const found = asked.flatMap(({ data }) => data?.items ?? []);
  const choices: Repository[] = distinct([
    ...recent,
    ...found.map(({ full_name: name, git_provider: provider }) => ({ name, provider, note: providerName(provider) })),
  ]);
  const silent = hosts.filter((_host, index) => asked[index]?.isError).map(providerName);
  return {
    choices: fitting(choices, text),
    status: statusOf(
      asked.some(({ isPending }) => isPending),
      silent,
    ),
    providerOf: (name: string) => choices.find((choice) => choice.name === name)?.provider,
  };
}

function statusOf(isSearching: boolean, silent: readonly string[]): string {
  const missing = silent.length === 0 ? '' : `${silent.join(' and ')} cannot be searched now.`;
  return isSearching ? 'Searching…' : missing;
}

const BRANCH = { label: 'Branch', placeholder: 'The default branch' };

type BranchFieldProps = { repository: string; provider: Provider | undefined; first: string };

export function BranchField({ repository, provider, first }: BranchFieldProps) {
  const [text, setText] = useState(first);
  const typed = useTyped(text);
  const query = { provider: provider ?? 'github', repository, query: typed, limit: MOST };
  const asked = useQuery({
    queryKey: ['branches', query],
    queryFn: () => bodyOf(api.GET('/api/v1/git/branches/search', by(query))),
    enabled: provider !== undefined,
    staleTime: 60_000,
  });
  const recent = (useQuery(recentQuery).data?.items ?? []).flatMap(
    ({ selected_repository: name, selected_branch: branch }) =>
      name === repository && branch !== null ? [{ name: branch }] : [],
  );
  const choices = fitting(distinct<Choice>([...recent, ...(asked.data?.items ?? [])]), text);
  const names = choices.map(({ name }) => ({ name }));
  const silent = asked.isError && provider !== undefined ? [providerName(provider)] : [];
  const status = provider === undefined ? 'Choose a repository first.' : statusOf(asked.isPending, silent);
  return <SearchField {...BRANCH} value={text} onText={setText} choices={names} hint={status} />;
}
