/** What stands before every path of the service, as `/slipway`, where it is not at the root of its origin. */
export const PATH_PREFIX = document.querySelector<HTMLMetaElement>('meta[name="path-prefix"]')?.content ?? '';
