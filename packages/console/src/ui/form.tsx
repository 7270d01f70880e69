import { useMutation, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, type ReactNode, useRef } from 'react';
import { Button } from './button.js';
import { Callout } from './problem.js';

interface FormProps {
  /** Screen readers, and tests, find the form by it. */
  name: string;
  submit: string;
  /** Gets the fields by their names, trimmed; resolves to what is said then. */
  onSubmit: (field: Fields) => Promise<string | { warning: string } | null>;
  /** What is asked for again then. */
  old?: unknown[][];
  /** Beside the button. */
  actions?: ReactNode;
  children: ReactNode;
}

export type Fields = (name: string) => string;

/** A form that shows that it works, what it has done, and why it failed. It is emptied when that went well. */
export function Form({ name, submit, onSubmit, old = [], actions, children }: FormProps) {
  const cache = useQueryClient();
  const form = useRef<HTMLFormElement>(null);
  const sent = useMutation({
    mutationFn: onSubmit,
    onSuccess: async () => {
      await Promise.all(old.map((queryKey) => cache.invalidateQueries({ queryKey })));
      form.current?.reset();
    },
    meta: { showsErrors: true },
  });
  const send = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    sent.mutate(fieldsOf(event.currentTarget));
  };
  return (
    <form ref={form} aria-label={name} name={name} onSubmit={send} className="form">
      {children}
      {sent.isError && <Callout kind="error">{sent.error.message}</Callout>}
      {typeof sent.data === 'object' && sent.data !== null && (
        <Callout kind="warning">{sent.data.warning}</Callout>
      )}
      <div className="actions">
        <Button type="submit" look="primary" isBusy={sent.isPending}>
          {submit}
        </Button>
        {actions}
        <span role="status" className="done">
          {typeof sent.data === 'string' ? sent.data : null}
        </span>
      </div>
    </form>
  );
}

export function fieldsOf(form: HTMLFormElement): Fields {
  const data = new FormData(form);
  return (name) => {
    const value = data.get(name);
    return typeof value === 'string' ? value.trim() : '';
  };
}

/** Without members that were left empty. */
export function given<T extends Record<string, string>>(fields: T): Partial<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== '')) as Partial<T>;
}
