import type { UseQueryResult } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { Button } from './button.js';

interface CalloutProps {
  kind: 'error' | 'warning' | 'info';
  title?: string;
  children: ReactNode;
}

export function Callout({ kind, title, children }: CalloutProps) {
  return (
    <div className={`callout ${kind}`} role={kind === 'error' ? 'alert' : undefined}>
      {title !== undefined && <p className="callout-title">{title}</p>}
      {typeof children === 'string' ? <p>{children}</p> : children}
    </div>
  );
}

/** What a list says that has nothing, and what to do about it. */
export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="empty">
      <p className="empty-title">{title}</p>
      {typeof children === 'string' ? <p>{children}</p> : children}
    </div>
  );
}

interface LoadedProps<T> {
  query: UseQueryResult<T>;
  /** What is being loaded, for people who wait for it. */
  name: string;
  /** What is said of a list that has nothing. */
  empty?: string;
  children: (data: T) => ReactNode;
}

/** The data of a query, or what there is to say until it is there. Data stay while they are asked for again. */
export function Loaded<T>({ query, name, empty, children }: LoadedProps<T>) {
  if (empty !== undefined && Array.isArray(query.data) && query.data.length === 0) {
    return <Empty title={empty} />;
  }
  if (query.data !== undefined) {
    return children(query.data);
  }
  return query.isError ? (
    <Callout kind="error" title={`Cannot load ${name}`}>
      <p>{query.error.message}</p>
      <Button onClick={() => void query.refetch()}>Try again</Button>
    </Callout>
  ) : (
    <p className="loading" role="status">
      <span className="spinner" aria-hidden="true" /> Loading {name}…
    </p>
  );
}
