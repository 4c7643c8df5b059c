/** Components that are drawn anew only where one of their properties is another value than before. */
import { h, type FunctionComponent, type VNode } from "preact";
import { useRef } from "preact/hooks";

function differ(before: object, after: object): boolean {
  const names = Object.keys(after) as never[];
  return names.length !== Object.keys(before).length || names.some((name) => !Object.is(before[name], after[name]));
}

/** The component, with its last drawing kept while its properties stay the same. */
export function kept<P extends object>(View: FunctionComponent<P>): FunctionComponent<P> {
  return function Kept(props: P) {
    const last = useRef<{ props: P; drawn: VNode<P> } | null>(null);
    if (last.current === null || differ(last.current.props, props)) last.current = { props, drawn: h(View, props) };
    return last.current.drawn;
  };
}
