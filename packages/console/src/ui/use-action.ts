import { type UseMutationResult, useMutation, useQueryClient } from '@tanstack/react-query';

export type Action<T> = UseMutationResult<unknown, Error, T>;

/** Something that a button does; what it makes old is asked for again. A failure is said in a notice. */
export function useAction<T = void>(act: (input: T) => Promise<unknown>, ...old: unknown[][]): Action<T> {
  const cache = useQueryClient();
  const refresh = () => Promise.all(old.map((queryKey) => cache.invalidateQueries({ queryKey })));
  return useMutation({ mutationFn: act, onSettled: refresh });
}
