/** Whether `Accept` names a media type; wildcards do not, and neither does `q=0`. */
export function namesMediaType(accept: string | undefined, mediaType: string): boolean {
  return (accept ?? '').split(',').some((range) => {
    const [type = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase());
    return type === mediaType && !parameters.some((text) => /^q\s*=\s*0(\.0*)?$/.test(text));
  });
}
